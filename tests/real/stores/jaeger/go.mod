module jaeger

go 1.25.0

require github.com/jaegertracing/jaeger v1.76.0
