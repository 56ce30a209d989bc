"""One module per resource. Views are thin: they read the request, call a query or a service, and
return its result.
"""
