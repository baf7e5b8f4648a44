module github.com/heddle-dmt/heddle

go 1.24

require (
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/unicorn-engine/unicorn v0.0.0-20250911131444-c24c9ebe773c // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	golang.org/x/sys v0.33.0 // indirect
	pgregory.net/rapid v1.2.0 // indirect
)
