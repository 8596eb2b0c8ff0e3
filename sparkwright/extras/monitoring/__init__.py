"""Monitoring by Prometheus and Grafana: targets, alert rules and a dashboard, as files.

The alert rules are those of doctor and watch: the same names, thresholds, reasons and remedies.
"""
