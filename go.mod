module github.com/heddle-dmt/heddle

go 1.24

require golang.org/x/sys v0.33.0 // indirect
