// Package dns stands in for lego's list of ACME DNS providers, whose cloud SDKs are two thirds of Traefik's compile time.
// The one-machine node's certificate comes from its own CA, so no ACME challenge is ever solved there.
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
)

// NewDNSChallengeProviderByName refuses every name.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("ACME DNS provider %q is not part of this build of Traefik", name)
}
