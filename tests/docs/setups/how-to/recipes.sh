# A cluster without quotas, with a profile.
git rm -rq desired_state/demo
mkdir desired_state/shop
cat > desired_state/shop/cluster.yaml <<end
cluster_id: MkU3OEVBNTcwNTJENDM2Qg
connection: demo
profiles:
  silver: {producer_byte_rate: 10 MiB, consumer_byte_rate: 20 MiB}
  gold: {profile: silver, producer_byte_rate: 50 MiB}
end
git add . && git commit -qm 'The profiles of shop'
