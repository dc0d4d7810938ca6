"""Continuous states without tuning: pendulum, CartPole and MountainCar."""
