"""Statistic in, plotly figure out."""
