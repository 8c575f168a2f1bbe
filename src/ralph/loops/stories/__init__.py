"""R: stories of a PRD, each reviewed by a fresh session before it counts."""
