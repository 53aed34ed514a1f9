"""The one place where the parts are put together: engines, the gateway, serving it, and the commands."""
