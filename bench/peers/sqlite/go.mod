module github.com/stint-go/stint/bench/peers/sqlite

go 1.26.0

replace (
	github.com/stint-go/stint => ../../..
	github.com/stint-go/stint/bench => ../..
)

require (
	github.com/mattn/go-sqlite3 v1.14.52
	github.com/mikestefanello/backlite v0.6.0
	github.com/riverqueue/river v0.47.0
	github.com/riverqueue/river/riverdriver/riversqlite v0.47.0
	github.com/stint-go/stint v0.0.0-00010101000000-000000000000
	github.com/stint-go/stint/bench v0.0.0-00010101000000-000000000000
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/ncruces/go-sqlite3 v0.35.6 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.3.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/riverqueue/river/riverdriver v0.47.0 // indirect
	github.com/riverqueue/river/rivershared v0.47.0 // indirect
	github.com/riverqueue/river/rivertype v0.47.0 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
