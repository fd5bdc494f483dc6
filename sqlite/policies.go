package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stint-go/stint/retry"
)

// storePolicy keeps a policy as data. Repeating it costs a look at one row,
// which is cheaper than to remember rightly what has been committed.
const storePolicySQL = `insert into stint_policies (id, body) values (?, ?) on conflict do nothing`

const readPolicySQL = `select body from stint_policies where id = ?`

// encodePolicy is how a policy is stored: its number, which is the first 63
// bits of the SHA-256 of its text, and its text.
func encodePolicy(p retry.Policy) (id int64, text string, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return 0, "", err
	}
	sum := sha256.Sum256(body)
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1), string(body), nil
}

// policies remembers what policies were read. A number is the hash of a text,
// so what it stands for never changes.
type policies struct {
	mu    sync.Mutex
	known map[int64]retry.Policy
}

// read returns the policy with a number; 0 is the default one.
func (p *policies) read(c *conn, id int64) (retry.Policy, error) {
	if id == 0 {
		return retry.Default(), nil
	}
	p.mu.Lock()
	policy, ok := p.known[id]
	p.mu.Unlock()
	if ok {
		return policy, nil
	}
	return p.readNew(c, id)
}

// readNew reads a policy that is not remembered. It stands apart because what it
// reads into is allocated, and read is called for each job.
func (p *policies) readNew(c *conn, id int64) (policy retry.Policy, err error) {
	found := false
	err = c.query(readPolicySQL, []any{id}, func(s *stmt) error {
		found = true
		return json.Unmarshal(s.ColumnRawText(0), &policy)
	})
	if err != nil {
		return policy, fmt.Errorf("policy %d: %w", id, err)
	} else if !found {
		return policy, fmt.Errorf("policy %d is missing", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= 1000 {
		p.known = map[int64]retry.Policy{}
	}
	p.known[id] = policy
	return policy, nil
}
