"""The KV pool of a launch, estimated by interval arithmetic."""
