"""The audit: is what the topics and the store hold what the requests give?"""
