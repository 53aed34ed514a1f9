"""The HTTP server: connections and their limits, calls at webhooks taken in without a framework in between,
and several processes on one address. It hands the other requests to the application
(``surfaces/app.py``)."""
