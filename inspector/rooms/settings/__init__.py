"""Pages for settings: the policy and labels of a conversation, default policies, and API tokens.
The package `chatmemory` stores the settings and checks their rules.
"""
