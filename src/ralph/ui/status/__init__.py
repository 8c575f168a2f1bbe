"""The report of `ralph status`. Public: `report`, `spending`,
`listing`, `reading`, `known`."""
