"""Pages for settings: policy and labels of a conversation, default policies, and API tokens. The
package `chatmemory` stores and checks the settings.
"""
