# A Git that refuses, in place of a checkout of another user.
git rm -rq desired_state/demo
mkdir desired_state/orders
cat > desired_state/orders/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
end
cat > desired_state/orders/checkout.yaml <<end
owner: checkout

quotas:
  - user: checkout
    limits: {producer_byte_rate: 10 MiB}
end
git add . && git commit -qm 'The quotas of orders'
mkdir -p ~/bin && cat > ~/bin/git <<'end'
#!/bin/sh
echo "fatal: detected dubious ownership in repository at '/srv/quotas'" >&2
echo "  git config --global --add safe.directory /srv/quotas" >&2
exit 128
end
chmod +x ~/bin/git
export PATH="$HOME/bin:$PATH"
