"""Exports as users have them, good and damaged: is an answer right, refused, or wrong and trusted?"""
