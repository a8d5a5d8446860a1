"""Names by which programs know the pipeline of this package; it lives in `astrocyte.pipelines`."""
