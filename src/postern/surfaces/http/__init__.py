"""The HTTP server: connections and their limits, calls at webhooks taken in without a framework in between,
and several processes on one address. What it does not answer itself is handed to the application
(``surfaces/app.py``)."""
