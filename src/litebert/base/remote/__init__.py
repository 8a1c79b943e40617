"""Object stores and web servers: the one place that knows about URLs."""
