#!/bin/bash
# What a machine runs from power-on to power-off: containerd, the node part of the SAN's driver, kube-proxy and the kubelet.
# It is the first process of the machine's namespaces: when it is killed, everything is gone at once.
set -eu

mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lock
mount --bind "$MACHINE_DIR/log" /var/log
mkdir -p /var/lib/cni
mount --bind "$MACHINE_DIR/cni-state" /var/lib/cni
mount --bind "$MACHINE_DIR/machine-id" /etc/machine-id
hostname "$MACHINE"

# Like an init system: what ends is started again, a second later.
keep() {
    while :; do
        "$@" || true
        sleep 1
    done
}

keep containerd --config "$MACHINE_DIR/containerd.toml" >>"$MACHINE_DIR/log/containerd.log" 2>&1 &
until ctr -a "$CONTAINERD" version >/dev/null 2>&1; do sleep 0.1; done
for image in "$IMAGES"/*.tar; do
    seen="$MACHINE_DIR/imported-$(basename "$image")"
    if [ ! -e "$seen" ] || [ "$image" -nt "$seen" ]; then
        ctr -a "$CONTAINERD" -n k8s.io image import "$image" >>"$MACHINE_DIR/log/images.log" 2>&1
        touch "$seen"
    fi
done

# What the last boot left of them are sockets that nobody answers.
rm -rf "$MACHINE_DIR/kubelet/plugins" "$MACHINE_DIR/kubelet/plugins_registry"
mkdir -p "$MACHINE_DIR/kubelet/plugins/san" "$MACHINE_DIR/kubelet/plugins_registry"
# The kubelet sends the socket's path, percent-encoded, as the name of the host, and Rust's HTTP takes "%" in it only before an "@".
keep "$SAN_PROGRAM" node --san "$SAN" --node-id "$MACHINE" \
    --socket "$MACHINE_DIR/kubelet/plugins/san/csi.sock" \
    --registration-socket "$MACHINE_DIR/kubelet/plugins_registry/san@lab-reg.sock" >>"$MACHINE_DIR/log/san.log" 2>&1 &

keep "$KUBERNETES" kube-proxy --config "$MACHINE_DIR/proxy.json" --hostname-override "$MACHINE" \
    >>"$MACHINE_DIR/log/kube-proxy.log" 2>&1 &

keep "$KUBERNETES" kubelet --config "$MACHINE_DIR/kubelet.json" --kubeconfig "$KUBECONFIG_OF_NODE" \
    --hostname-override "$MACHINE" --node-ip "$ADDRESS" --node-labels "$LABELS" \
    --root-dir "$MACHINE_DIR/kubelet" --cert-dir "$MACHINE_DIR/kubelet-pki" \
    --boot-id-file "$MACHINE_DIR/boot-id" --machine-id-file /etc/machine-id \
    >>"$MACHINE_DIR/log/kubelet.log" 2>&1 &

wait
