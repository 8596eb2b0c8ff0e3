"""Notices: new, worsened and ended findings, by ntfy, mail or a webhook."""
