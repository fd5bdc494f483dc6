package api

import (
	"encoding/json"

	"github.com/stint-go/stint"
)

// ReadWorkerKind reads a kind that a worker performs.
func ReadWorkerKind(text []byte) (stint.KindInfo, error) {
	var k workerKind
	if err := json.Unmarshal(text, &k); err != nil {
		return stint.KindInfo{}, err
	}
	return k.info()
}
