#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm topo: the matrix of a machine whose tree is known, in each format; what it refuses.

. "$abs_top_srcdir/tests/tools/fixture.sh"

machine=$abs_top_srcdir/tests/tools/topo/machine.xml

# Two switches below one host bridge, one of them with another below it; a second host
# bridge of the same NUMA node; a second NUMA node; and a host bridge near none. The words
# are those of nvidia-smi topo -m.
dscomm topo --input "$machine"
is $status 0 'a file of hwloc: status'
is "$(echo "$out" | sed -n '/NUMA  processors/,/^$/p' | sed 's/ *$//')" \
    '       GPU0   GPU1   GPU2   GPU3   GPU4   GPU5   NIC0   NIC1   NIC2   NUMA  processors
GPU0   X      PIX    PHB    NODE   SYS    SYS    PIX    PHB    SYS    0     0-7
GPU1   PIX    X      PHB    NODE   SYS    SYS    PIX    PHB    SYS    0     0-7
GPU2   PHB    PHB    X      NODE   SYS    SYS    PHB    PXB    SYS    0     0-7
GPU3   NODE   NODE   NODE   X      SYS    SYS    NODE   NODE   SYS    0     0-7
GPU4   SYS    SYS    SYS    SYS    X      SYS    SYS    SYS    PHB    1     8-15
GPU5   SYS    SYS    SYS    SYS    SYS    X      SYS    SYS    SYS    -     -
NIC0   PIX    PIX    PHB    NODE   SYS    SYS    X      PHB    SYS    0     0-7
NIC1   PHB    PHB    PXB    NODE   SYS    SYS    PHB    X      SYS    0     0-7
NIC2   SYS    SYS    SYS    SYS    PHB    SYS    SYS    SYS    X      1     8-15' 'the matrix'
like "$out" '^GPU0 +0000:03:00.0 +GA100 \[A100 SXM4 80GB\], PCI 31.5 GB/s$' 'a GPU and its link'
like "$out" '^NIC0 +0000:05:00.0 +mlx5_0, PCI 31.5 GB/s$' 'a NIC has its name for RDMA'
like "$out" '^NIC2 +0000:82:00.0 +eth2, ' 'or that of its interface'
is "$(echo "$out" | grep -c ASPEED)" 0 'a VGA that computes nothing is left out'
is "$(echo "$out" | grep -c '^NV# ')" 0 'words that do not occur are not explained'

# JSON
dscomm topo --input "$machine" --json --output "$scratch/machine.json"
is $status 0 'JSON: status'
python3 - "$scratch/machine.json" <<'END'
import json
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    tree = json.load(file)
devices = {device["label"]: device for device in tree["devices"]}
assert len(devices) == 9 and [node["processors"] for node in tree["numa_nodes"]] == ["0-7", "8-15"]
assert devices["GPU2"]["links"]["NIC1"] == "PXB" and devices["GPU5"]["numa"] is None
for one in devices.values():
    assert one["links"][one["label"]] == "X"
    for other in devices.values():
        assert one["links"][other["label"]] == other["links"][one["label"]]
END
result $? 'JSON: the same, symmetric'

# NCCL's XML is written and read. It has no host bridges, so all of a NUMA node are PHB.
dscomm topo --input "$machine" --output "$scratch/nccl.xml"
is $status 0 'NCCL: written'
is "$(grep -c '<gpu ' "$scratch/nccl.xml") $(grep -c '<net ' "$scratch/nccl.xml")" '6 3' \
    'NCCL: all devices'
like "$(cat "$scratch/nccl.xml")" '^  <cpu numaid="1" affinity="0000ff00">$' 'NCCL: processors'
dscomm topo --input "$scratch/nccl.xml"
is $status 0 'NCCL: read'
like "$out" '^GPU0   X      PIX    PHB    PHB    SYS ' 'NCCL: the same links, but no NODE'
cat >"$scratch/switched.xml" <<'END'
<system version="1">
  <cpu numaid="0" affinity="ffff,00000000" arch="x86_64">
    <pci busid="0000:07:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:c4:00.0" count="12" tclass="0x068000"/></gpu>
    </pci>
    <pci busid="0000:0f:00.0" class="0x030200">
      <gpu dev="1"><nvlink target="0000:c4:00.0" count="6" tclass="0x068000"/><nvlink target="0000:c5:00.0" count="4" tclass="0x068000"/></gpu>
    </pci>
    <pci busid="0000:10:00.0" class="0x030200"><gpu dev="2"/></pci>
  </cpu>
</system>
END
dscomm topo --input "$scratch/switched.xml"
like "$out" '^GPU0   X      NV10   PHB    0     32-47$' 'NVLinks to switches connect all'
like "$out" '^NV#   so many NVLinks$' 'which is explained'
like "$out" '^GPU1   0000:0f:00.0$' 'a device of which no more is told'
dscomm topo --input "$scratch/switched.xml" --format nccl
is "$(echo "$out" | grep -o 'link_[a-z]*="[^"]*"' | tr '\n' ' ')" \
    'link_speed="16.0 GT/s PCIe" link_width="16" ' "NCCL: a link's speed is kept"
like "$out" ' <gpu dev="0" sm="80" rank="0" gdr="1">' 'NCCL: GPUDirect RDMA that is told is kept'
is "$(grep -c gdr "$scratch/nccl.xml")" 0 'NCCL: finds GPUDirect RDMA itself where it is not told'
is "$(grep -c link_speed "$scratch/nccl.xml")" 0 \
    'NCCL: no speed from hwloc, whose XML has what the link ran at, not what it can'

# Attributes that say nothing of links are kept.
sed 's/arch="x86_64"/& vendor="AuthenticAMD" host_hash="0x1f"/; s/sm="80" rank="0"/sm="80" rank="7"/
    s/class="0x030200" link/subsystem_vendor="0x10de" &/
    s|^  </cpu>|    <pci busid="0000:11:00.0" class="0x020000"><nic><net name="a\&amp;b" dev="3" port="1" guid="0x2"/></nic></pci>\n&|' \
    "$scratch/switched.xml" >"$scratch/attributes.xml"
dscomm topo --input "$scratch/attributes.xml" --output "$scratch/again.xml"
for attributes in 'arch="x86_64" vendor="AuthenticAMD" host_hash="0x1f"' \
    'subsystem_vendor="0x10de"' 'gpu dev="0" sm="80" rank="7" gdr="1"' \
    'name="a&amp;b" dev="3" port="1" guid="0x2"'; do
    is "$(grep -c -F "$attributes" "$scratch/again.xml")" 1 "NCCL: kept: $attributes"
done
dscomm topo --input "$scratch/again.xml" --format nccl
is "$out" "$(cat "$scratch/again.xml")" 'NCCL: the same when it is read again'
sed 's|<pci busid="0000:0f|</cpu><cpu numaid="1" host_hash="0x1f">&|' \
    "$scratch/attributes.xml" >"$scratch/host.xml"
dscomm topo --input "$scratch/host.xml"
is $status 0 'NCCL: two processors of one host'
sed 's|numaid="1" host_hash="0x1f"|numaid="0" host_hash="0x2f"|' "$scratch/host.xml" \
    >"$scratch/hosts.xml"

# Names of files
dscomm topo --input "$machine" --output -
is $status 0 '- is standard output: status'
is "$out" "$("$program" topo --input "$machine")" '- is standard output'
is "$(find . -maxdepth 1 -name -)" '' '- is no file'
dscomm topo --input "$machine" --output "$scratch/matrix.other"
is "$(cat "$scratch/matrix.other")" "$("$program" topo --input "$machine")" 'another name means text'

# Pictures
dscomm topo --input "$machine" --format dot
is "$(echo "$out" | sed -n '1p;$p' | tr '\n' ' ')" 'graph topology { } ' 'Graphviz'
is "$(echo "$out" | grep -c ' -- ')" "$(($(echo "$out" | grep -c 'label=') - 1))" \
    'Graphviz: a tree has a line less than nodes'
bare=$scratch/bare.xml
printf '<system version="1"><cpu numaid="0" affinity="3"/></system>' >"$bare"
dscomm topo --input "$bare"
like "$out" '^There are no GPUs or NICs on PCI\.$' 'no devices'
dscomm topo --input "$machine" --output "$scratch/matrix.svg"
case $err in
*'built without cairo'*) skip 'pictures' 'this build has no cairo' ;;
*)
    is $status 0 'a picture: status'
    python3 -c 'import sys, xml.dom.minidom as m
m.parse(sys.argv[1])' "$scratch/matrix.svg"
    result $? 'a picture: SVG is XML'
    # Margins 20 + 20 + 20, 56 of titles and no cells, one line of 18
    "$program" topo --input "$bare" --output "$scratch/bare.svg"
    like "$(cat "$scratch/bare.svg")" '<svg .* height="134(pt)?"' \
        'a picture: it says that there are no devices'
    dscomm topo --input "$machine" --output "$scratch/matrix.png"
    is "$(head -c 4 "$scratch/matrix.png" | tail -c 3)" PNG 'a picture: PNG'
    ;;
esac

# A GPU's memory is a NUMA node without processors.
dscomm topo --input "$abs_top_srcdir/tests/env/machines/grace.xml"
is "$(echo "$out" | sed -n '/NUMA  processors/,/^$/p' | sed 's/ *$//')" \
    '       GPU0   GPU1   NIC0   NIC1   NUMA  processors
GPU0   X      SYS    NODE   SYS    0     0-5
GPU1   SYS    X      SYS    NODE   1     6-11
NIC0   NODE   SYS    X      SYS    0     0-5
NIC1   SYS    NODE   SYS    X      1     6-11' "a machine with GPUs' memory"

# This machine
dscomm topo
is $status 0 'this machine: status'
like "$out" '^Topology of this machine' 'this machine'
like "$out" '^NUMA node 0: processors [0-9,-]+, [1-9][0-9]* cores?' 'its processors and cores'

# What NCCL writes of what it does not know
sed 's/numaid="0"/numaid="-1"/; s/link_speed="[^"]*" link_width="16"/link_speed="" link_width=""/' \
    "$scratch/switched.xml" >"$scratch/unknown.xml"
dscomm topo --input "$scratch/unknown.xml"
is $status 0 'NCCL: a speed, a width and a NUMA node that are not known'
like "$out" '^GPU0   X      NV10   PHB    -  ' 'which is said'
like "$out" '^GPU0 +0000:07:00.0' 'NCCL: a GPU without a speed'

# An interface that is not on PCI, and a GPU whose maker is not told
sed 's|^  </cpu>|    <nic><net name="eth0" dev="0"/></nic>\n&|' "$scratch/switched.xml" \
    >"$scratch/virtual.xml"
dscomm topo --input "$scratch/virtual.xml"
like "$out" '^NIC0 .* X +0 ' 'NCCL: an interface that is not on PCI'
dscomm topo --input "$scratch/virtual.xml" --format nccl
is "$(echo "$out" | grep -c 'name="eth0"') $(echo "$out" | grep -c vendor=)" '1 0' \
    'NCCL: it is written again, and no maker'

# wrong WHAT BY: a file of NCCL in which the first of each line is replaced
wrong()
{
    sed "s|$1|$2|" "$scratch/switched.xml" >"$scratch/wrong"
    echo "$scratch/wrong"
}

# What it refuses
echo '<topology version="2.0"><object' >"$scratch/broken"
echo '<system><cpu numaid="0">' >"$scratch/unclosed"
head -c 1000 /dev/zero >"$scratch/zeros"
{ echo '<system>'; yes '<pci>' | head -100; } >"$scratch/deep"
while read -r want pattern line; do
    eval "dscomm topo $line"
    is $status $want "status of: $line"
    like "$err" "^dscomm topo: .*$(echo "$pattern" | tr _ ' ')" "sentence of: $line"
done <<'END'
2 --format_must_be_text,_json,_dot_or_nccl,_not_'png' --format png
2 --output_x.gif:_a_picture's_name_ends_in_.svg_or_.png --output x.gif
2 --output_.*x.jpeg:_a_picture's_name_ends_in_.svg_or_.png --output "$scratch/x.jpeg"
2 options_of_copies_need_--p2p --tensors 3
2 --json_and_--format_dot_exclude_each_other --json -f dot
2 unexpected_argument_'all' all
1 No_such_file --input /no/such/file
1 is_no_XML --input "$scratch/zeros"
1 no_XML_that_hwloc_has_exported --input "$scratch/broken"
1 unclosed --input "$scratch/unclosed"
1 more_than_64_elements_in_each_other --input "$scratch/deep"
1 wrong:_.*<cpu>_has_numaid="zero",_which_is_no_number_from_-1_to_65536 --input "$(wrong numaid=\"0\" numaid=\"zero\")"
1 wrong:_.*<cpu>_has_numaid="0x0", --input "$(wrong numaid=\"0\" numaid=\"0x0\")"
1 wrong:_.*<cpu>_has_affinity="ffff;0",_which_is_no_mask --input "$(wrong ffff,00000000 'ffff;0')"
1 wrong:_.*<cpu>_has_affinity="1ffffffff,0", --input "$(wrong ffff,00000000 1ffffffff,0)"
1 wrong:_.*<pci>_has_busid="07",_which_is_no_PCI_address --input "$(wrong busid=\"0000:07:00.0 busid=\"07)"
1 wrong:_.*two_<pci>_have_busid="0000:0f:00.0",_but_an_address_is_that_of_one_device --input "$(wrong 0000:10 0000:0f)"
1 hosts.xml:_.*it_has_<cpu>_of_several_hosts;_give_the_XML_of_one_host --input "$scratch/hosts.xml"
1 wrong:_.*<gpu>_that_is_not_in_a_<pci> --input "$(wrong '<pci busid.*0f:00.0" class="0x030200">' '<pci busid="0000:0f:00.0"><gpu/><gpu/>')"
1 wrong:_.*<pci>_has_class="0xgpu",_which_is_no_hexadecimal --input "$(wrong 0x030200 0xgpu)"
1 wrong:_.*<pci>_has_link.speed="fast",_which_is_no_speed --input "$(wrong '16.0 GT/s PCIe' fast)"
1 wrong:_.*<pci>_has_link.speed="16.0_MHz", --input "$(wrong 'GT/s PCIe' MHz)"
1 wrong:_.*<pci>_has_link.width="x16",_which_is_no_number_from_0_to_255 --input "$(wrong link_width=\"16 link_width=\"x16)"
1 wrong:_.*<pci>_has_link.width="-1", --input "$(wrong link_width=\"16 link_width=\"-1)"
1 wrong:_.*<nvlink>_has_count="6_or_so", --input "$(wrong count=\"6 'count=\"6 or so')"
1 wrong:_.*<nvlink>_has_tclass="switch",_which_is_no_hexadecimal --input "$(wrong 0x068000 switch)"
1 --output_/no/such/folder/x:_No_such_file --input "$machine" --output /no/such/folder/x
END

tap_done
