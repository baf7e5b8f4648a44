module github.com/heddle-dmt/heddle

go 1.24
