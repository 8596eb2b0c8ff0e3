"""Monitoring by Prometheus and Grafana: targets, alert rules and a dashboard, as files.

The rules judge as doctor and watch do: the same names, thresholds, reasons and remedies.
"""
