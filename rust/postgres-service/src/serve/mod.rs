//! Serves the handlers of a service.
