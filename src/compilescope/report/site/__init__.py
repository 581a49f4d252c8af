"""The registry as a site of plain files: pages, search, dashboard, feed. Torch stays out."""
