"""`litebert reproduce`: the papers' tables as data, the grid of runs behind them, the report."""
