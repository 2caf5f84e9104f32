"""The actions: one file each, one `execute` each. Adding one adds a row to `registry`."""
