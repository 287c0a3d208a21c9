"""Settings for all tests: kernels compile on first call, so hypothesis sets no deadline, and repeats its examples."""

from hypothesis import settings

settings.register_profile("pipeline", deadline=None, derandomize=True)
settings.load_profile("pipeline")
