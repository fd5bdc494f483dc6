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

// encodePolicy returns a policy as it is stored: its number, which is the first 63
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
	known map[int64]*storedPolicy
}

// storedPolicy is what a text stands for here. One that this program cannot read
// is a newer program's: its job must not wait for ours to be upgraded, nor must
// those that are read along with it, so the default one serves.
type storedPolicy struct {
	policy retry.Policy
	name   string // what people see: the text itself where it cannot be read
}

// read returns the policy with a number; 0 is the default one.
func (p *policies) read(c *conn, id int64) (retry.Policy, error) {
	if id == 0 {
		return retry.Default(), nil
	}
	stored, err := p.find(c, id)
	if err != nil {
		return retry.Policy{}, err
	}
	return stored.policy, nil
}

// name returns the policy with a number as people see it.
func (p *policies) name(c *conn, id int64) (string, error) {
	if id == 0 {
		return retry.Default().String(), nil
	}
	stored, err := p.find(c, id)
	if err != nil {
		return "", err
	}
	return stored.name, nil
}

func (p *policies) find(c *conn, id int64) (*storedPolicy, error) {
	p.mu.Lock()
	stored := p.known[id]
	p.mu.Unlock()
	if stored != nil {
		return stored, nil
	}
	return p.findNew(c, id)
}

// findNew reads a policy that is not remembered. It stands apart because what it
// reads into is allocated, and find is called for each job.
func (p *policies) findNew(c *conn, id int64) (*storedPolicy, error) {
	var stored *storedPolicy
	err := c.query(readPolicySQL, []any{id}, func(s *stmt) error {
		stored = &storedPolicy{}
		text := s.ColumnRawText(0)
		if err := json.Unmarshal(text, &stored.policy); err != nil {
			stored.policy, stored.name = retry.Default(), string(text)
		} else {
			stored.name = stored.policy.String()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("policy %d: %w", id, err)
	} else if stored == nil {
		return nil, fmt.Errorf("policy %d is missing", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= 1000 {
		p.known = map[int64]*storedPolicy{}
	}
	p.known[id] = stored
	return stored, nil
}
