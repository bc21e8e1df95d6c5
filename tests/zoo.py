"""What tests of the zoo share: the sizes that its networks take, and those of which one stands for others."""

from pydtconv import applications

#: pixels of the smallest images of networks whose smallest are larger than 32x32
SMALLEST = {"inceptionv3": 75, "inceptionresnetv2": 75, "xception": 71}
#: networks of a builder that makes another one, too: only depths and widths differ
OTHER_SIZES = (
    "convnextbase", "convnextlarge", "convnextsmall", "convnextxlarge", "densenet169", "densenet201",
    "efficientnetb1", "efficientnetb2", "efficientnetb3", "efficientnetb4", "efficientnetb5", "efficientnetb6",
    "efficientnetb7", "efficientnetv2b1", "efficientnetv2b2", "efficientnetv2b3", "efficientnetv2l",
    "efficientnetv2m", "efficientnetv2s", "nasnetlarge", "resnet101", "resnet152", "resnet101v2", "resnet152v2",
    "resnet110", "resnet32", "resnet44", "resnet56", "smallresnet101", "smallresnet152", "smalldensenet169",
    "smalldensenet201", "smallvgg19", "vgg11", "vgg16bn", "vgg19bn", "vgg19", "vits16",
)  # fmt: skip
#: one network of each builder
BUILDERS = [name for name in applications.names() if name not in OTHER_SIZES]
