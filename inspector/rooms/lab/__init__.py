"""The lab: advice on which limits are worth their cost, for many conversations and for groups of
conversations.
"""
