package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/axctl/ax"
)

// DeclaredPlugins implements ax.Plugins.
func (s *Store) DeclaredPlugins(ctx context.Context) ([]ax.DeclaredPlugin, error) {
	var declared []ax.DeclaredPlugin
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			p := ax.DeclaredPlugin{Stack: r.text(), Name: r.text(), Version: r.int()}
			if err := json.Unmarshal([]byte(r.text()), &p.Spec); err != nil {
				s.log.Error("a definition cannot be read; apply its plugin again",
					"plugin", ax.Address(ax.KindPlugin, p.Name), "version", p.Version, "error", err)
				p.Spec = ax.PluginSpec{}
			}
			declared = append(declared, p)
			return nil
		}, `SELECT s.name, o.name, o.version, d.body FROM stack s
			JOIN object o ON o.stack_id = s.id AND o.kind = 'plugin'
			JOIN definition d ON d.object_id = o.id AND d.version = o.defined
			WHERE o.deleted_ms IS NULL ORDER BY o.name, s.name`)
	})
	return declared, err
}

// Offer implements ax.Plugins.
func (s *Store) Offer(ctx context.Context, o ax.HostOffer) error {
	return s.write(ctx, 1+len(o.Handlers)+len(o.Plugins), func(t *tx) error {
		n, err := t.exec(`UPDATE host SET offered_ms = ?, containment = ?, data_problem = ? WHERE name = ? AND boot = ?`,
			o.AtMs, text(o.Containment), text(o.DataProblem), o.Host, o.Boot)
		if err == nil && n == 0 {
			err = fmt.Errorf("host %s has not joined as boot %s: %w", o.Host, o.Boot, ax.ErrConflict)
		}
		if err != nil {
			return err
		}
		for _, sql := range []string{`DELETE FROM handler_schema WHERE host = ?`, `DELETE FROM host_plugin WHERE host = ?`} {
			if _, err := t.exec(sql, o.Host); err != nil {
				return err
			}
		}
		for _, h := range o.Handlers {
			_, err := t.exec(`INSERT INTO handler_schema (host, handler, executor, hash, schema) VALUES (?, ?, ?, ?, ?)`,
				o.Host, h.Name, h.Executor, h.SchemaHash, string(h.Schema))
			if err != nil {
				return fmt.Errorf("handler %s: %w", h.Name, err)
			}
		}
		for _, p := range o.Plugins {
			_, err := t.exec(`INSERT INTO host_plugin (host, name, path, sha256, problem, declared, shadowed, quarantined_ms, retry_ms)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, o.Host, p.Name, p.Path, text(p.SHA256),
				text(ax.CleanText(p.Problem, ax.MaxErrorBytes)), text(ax.CleanText(p.Declared, ax.MaxErrorBytes)),
				text(ax.CleanText(p.Shadowed, ax.MaxErrorBytes)), null(p.QuarantinedMs), null(p.RetryMs))
			if err != nil {
				return fmt.Errorf("plugin %s: %w", p.Name, err)
			}
		}
		return nil
	})
}

// Offers implements ax.Queries.
func (s *Store) Offers(ctx context.Context) ([]ax.HostOffer, error) {
	var offers []ax.HostOffer
	of := map[string]int{}
	err := s.read(ctx, func(c *conn) error {
		err := c.query(ctx, func(r *row) error {
			o := ax.HostOffer{Host: r.text(), Boot: r.text(), AtMs: r.int64(), Containment: r.text(), DataProblem: r.text()}
			of[o.Host] = len(offers)
			offers = append(offers, o)
			return nil
		}, `SELECT name, boot, offered_ms, containment, data_problem FROM host WHERE offered_ms IS NOT NULL ORDER BY name`)
		if err != nil {
			return err
		}
		err = c.query(ctx, func(r *row) error {
			host := r.text()
			h := ax.OfferedHandler{Name: r.text(), Executor: r.text(), SchemaHash: r.text(), Schema: json.RawMessage(r.text())}
			if i, ok := of[host]; ok {
				offers[i].Handlers = append(offers[i].Handlers, h)
			}
			return nil
		}, `SELECT host, handler, executor, hash, schema FROM handler_schema ORDER BY host, handler`)
		if err != nil {
			return err
		}
		return c.query(ctx, func(r *row) error {
			host := r.text()
			p := ax.HostPlugin{
				Name: r.text(), Path: r.text(), SHA256: r.text(), Problem: r.text(), Declared: r.text(),
				Shadowed: r.text(), QuarantinedMs: r.int64(), RetryMs: r.int64(),
			}
			if i, ok := of[host]; ok {
				offers[i].Plugins = append(offers[i].Plugins, p)
			}
			return nil
		}, `SELECT host, name, path, sha256, problem, declared, shadowed, quarantined_ms, retry_ms
			FROM host_plugin ORDER BY host, name, path`)
	})
	return offers, err
}
