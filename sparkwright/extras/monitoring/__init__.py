"""Monitoring by Prometheus and Grafana: targets, alert rules and a dashboard, as files.

The alert rules have the names, thresholds, reasons and remedies of the doctor and the watch.
"""
