package host

import "sync"

// mailbox is a queue whose reader takes all that waits.
type mailbox[T any] struct {
	wake chan struct{} // holds a token while there is something to take

	mu    sync.Mutex
	items []T
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(items ...T) {
	if len(items) == 0 {
		return
	}
	m.mu.Lock()
	m.items = append(m.items, items...)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns up to max items, nil when there are none.
func (m *mailbox[T]) take(max int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(max, len(m.items))
	if n == 0 {
		return nil
	}
	taken := m.items[:n:n]
	m.items = m.items[n:]
	if len(m.items) == 0 {
		m.items = nil
	}
	return taken
}

func (m *mailbox[T]) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) == 0
}
