// The cluster's DNS server: CoreDNS with the plugins that localnode/manifests/coredns.yaml names, and template, with which a
// zone in the ConfigMap coredns-custom has records of its own.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

// The order in which plugins see a query, as in CoreDNS's own plugin.cfg.
func init() {
	dnsserver.Directives = []string{
		"reload", "bind", "health", "ready", "prometheus", "errors", "cache", "loadbalance", "template", "kubernetes",
		"loop", "forward",
	}
}

func main() { coremain.Run() }
