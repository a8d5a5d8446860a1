"""Why a memory is, or is not, in an answer."""
