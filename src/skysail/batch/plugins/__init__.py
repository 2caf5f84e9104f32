"""The plugins: one module each, callbacks are methods one can call in a test. Adding one adds a row to `registry`."""
