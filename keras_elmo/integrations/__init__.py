"""ELMo in other libraries: scikit-learn and spaCy. Each file needs its library (the extra of its name)."""
