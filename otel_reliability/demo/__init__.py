"""A small fleet of agents under a real SDK, and the service that judges them: `otel-reliability demo`.

`stage` is where agents act, `characters` and `fleet` who they are, `bookshop` their process, `sending` how their spans leave it,
`hosting` the service, `watch` what it tells of them, `page` what is shown, `play` all of it together.
"""
