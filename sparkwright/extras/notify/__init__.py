"""Notices to people: what began, what worsened and what ended, by ntfy, mail or a webhook."""
