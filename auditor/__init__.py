"""Static audit for cross-tenant KV-cache exposure in LLM serving."""

__version__ = "0.1.0"
HOMEPAGE = "https://github.com/OWNER/auditor"  # where this copy is published; OWNER is the account that publishes it
