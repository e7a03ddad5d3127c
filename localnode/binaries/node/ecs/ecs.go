// Package ecs stands in for Traefik's provider of Amazon ECS, whose SDK is a third of what is left of the compile time.
// The one-machine node's gateway is configured by Kubernetes only.
package ecs

import (
	"errors"

	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/safe"
)

// Provider has no options.
type Provider struct{}

// SetDefaults does nothing.
func (p *Provider) SetDefaults() {}

// Init refuses to start.
func (p *Provider) Init() error {
	return errors.New("the ECS provider is not part of this build of Traefik")
}

// Provide is never reached.
func (p *Provider) Provide(chan<- dynamic.Message, *safe.Pool) error {
	return p.Init()
}
