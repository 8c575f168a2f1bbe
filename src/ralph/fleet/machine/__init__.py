"""What a machine of the fleet does with an attempt. `relay` stands between the coordinator and the
attempt, which is a process of its own.
"""
