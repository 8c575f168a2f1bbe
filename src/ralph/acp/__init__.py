"""The client of an agent that speaks ACP: started like any agent, it takes one turn with it.

Public: `talk`, what is said to the agent; `permission`, what it may do; `peer`, its process;
`program`, a turn as a program (ADR 53)."""
