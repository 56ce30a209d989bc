"""Presenters of the lab: a conversation under several policies, and the limits of many.

They make no queries, and the templates only read their attributes. A new row of a table is one of
`ComparePage.rows` or `FleetPage.rows`.
"""
