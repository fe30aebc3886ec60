"""The types that the stages of an audit hand to each other."""
