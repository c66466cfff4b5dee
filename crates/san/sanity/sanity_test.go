// Package sanity runs csi-sanity, Kubernetes' own test of CSI drivers, against a palisade-san that runs already.
//
// tests/sanity.rs starts it; by hand:
//
//	SAN_CONTROLLER=/dir/controller.sock SAN_NODE=/dir/node.sock SAN_MOUNTS=/dir go test -count=1 -v ./...
package sanity

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

func TestSanity(t *testing.T) {
	controller, node, mounts := os.Getenv("SAN_CONTROLLER"), os.Getenv("SAN_NODE"), os.Getenv("SAN_MOUNTS")
	if controller == "" || node == "" || mounts == "" {
		t.Skip("SAN_CONTROLLER, SAN_NODE and SAN_MOUNTS have to say where the driver is and where to mount")
	}
	config := sanity.NewTestConfig()
	config.ControllerAddress = "unix:" + controller
	config.Address = "unix:" + node
	config.TargetPath = filepath.Join(mounts, "target")
	config.StagingPath = filepath.Join(mounts, "staging")
	sanity.Test(t, config)
}
