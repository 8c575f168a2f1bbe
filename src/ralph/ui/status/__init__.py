"""The report of `ralph status`. Public: `report`, `lines`, `spending`."""
